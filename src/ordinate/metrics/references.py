"""References: the publications that define the metrics."""

REFERENCES = {
    "amigo2013": "Amigó, Gonzalo, Verdejo (2013). A general evaluation measure for document "
    "organization tasks. SIGIR.",
    "amigo2020": "Amigó, Gonzalo, Mizzaro, Carrillo-de-Albornoz (2020). An effectiveness metric "
    "for ordinal classification: formal properties and experimental results. ACL.",
    "baccianella2009": "Baccianella, Esuli, Sebastiani (2009). Evaluation measures for ordinal "
    "regression. ISDA.",
    "bracher2021": "Bracher, Ray, Gneiting, Reich (2021). Evaluating epidemic forecasts in "
    "an interval format. PLOS Computational Biology 17(2).",
    "brennan1981": "Brennan, Prediger (1981). Coefficient kappa: some uses, misuses, and "
    "alternatives. Educational and Psychological Measurement 41(3).",
    "brier1950": "Brier (1950). Verification of forecasts expressed in terms of "
    "probability. Monthly Weather Review 78.",
    "cardoso2011": "Cardoso, Sousa (2011). Measuring the performance of ordinal classification. "
    "International Journal of Pattern Recognition and Artificial Intelligence 25(8).",
    "cohen1960": "Cohen (1960). A coefficient of agreement for nominal scales. Educational and "
    "Psychological Measurement 20(1).",
    "cohen1968": "Cohen (1968). Weighted kappa: nominal scale agreement with provision for scaled "
    "disagreement or partial credit. Psychological Bulletin 70(4).",
    "cruzramirez2014": "Cruz-Ramírez, Hervás-Martínez, Sánchez-Monedero, Gutiérrez (2014). Metrics "
    "to guide a multi-objective evolutionary algorithm for ordinal classification. "
    "Neurocomputing 135.",
    "epstein1969": "Epstein (1969). A scoring system for probability forecasts of ranked "
    "categories. Journal of Applied Meteorology 8.",
    "fortin2014": "Fortin, Abaza, Anctil, Turcotte (2014). Why should ensemble spread match "
    "the RMSE of the ensemble mean? Journal of Hydrometeorology 15(4).",
    "gaudette2009": "Gaudette, Japkowicz (2009). Evaluation methods for ordinal classification. "
    "Canadian AI.",
    "ghosh2015": "Ghosh et al. (2015). SemEval-2015 task 11: sentiment analysis of figurative "
    "language in Twitter. SemEval.",
    "gneiting2007": "Gneiting, Raftery (2007). Strictly proper scoring rules, prediction, "
    "and estimation. Journal of the American Statistical Association 102.",
    "good1952": "Good (1952). Rational decisions. Journal of the Royal Statistical Society B 14.",
    "goodman1954": "Goodman, Kruskal (1954). Measures of association for cross classifications. "
    "Journal of the American Statistical Association 49.",
    "gorodkin2004": "Gorodkin (2004). Comparing two K-category assignments by a K-category "
    "correlation coefficient. Computational Biology and Chemistry 28.",
    "gwet2014": "Gwet (2014). Handbook of inter-rater reliability, 4th edition.",
    "harrell1996": "Harrell, Lee, Mark (1996). Multivariable prognostic models. Statistics "
    "in Medicine 15.",
    "kendall1938": "Kendall (1938). A new measure of rank correlation. Biometrika 30.",
    "kendall1945": "Kendall (1945). The treatment of ties in ranking problems. Biometrika 33.",
    "krippendorff2011": "Krippendorff (2011). Computing Krippendorff's alpha-reliability.",
    "kull2019": "Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach (2019). Beyond "
    "temperature scaling. NeurIPS.",
    "kumar2019": "Kumar, Liang, Ma (2019). Verified uncertainty calibration. NeurIPS.",
    "lin1989": "Lin (1989). A concordance correlation coefficient to evaluate reproducibility. "
    "Biometrics 45.",
    "naeini2015": "Naeini, Cooper, Hauskrecht (2015). Obtaining well calibrated "
    "probabilities using Bayesian binning. AAAI.",
    "nixon2019": "Nixon, Dusenberry, Zhang, Jerfel, Tran (2019). Measuring calibration in "
    "deep learning. CVPR workshops.",
    "rennie2005": "Rennie, Srebro (2005). Loss functions for preference levels: regression with "
    "discrete ordered labels. IJCAI workshop on advances in preference handling.",
    "sakai2021": "Sakai (2021). Evaluating evaluation measures for ordinal classification and "
    "ordinal quantification. ACL.",
    "scott1955": "Scott (1955). Reliability of content analysis: the case of nominal scale coding. "
    "Public Opinion Quarterly 19(3).",
    "shannon1948": "Shannon (1948). A mathematical theory of communication. Bell System Technical "
    "Journal 27.",
    "silva2018": "Silva, Pinto, Cardoso (2018). A uniform performance index for ordinal "
    "classification with imbalanced classes. IJCNN.",
    "somers1962": "Somers (1962). A new asymmetric measure of association for ordinal variables. "
    "American Sociological Review 27.",
    "spearman1904": "Spearman (1904). The proof and measurement of association between two things. "
    "American Journal of Psychology 15.",
    "strehl2002": "Strehl, Ghosh (2002). Cluster ensembles: a knowledge reuse framework for "
    "combining multiple partitions. Journal of Machine Learning Research 3.",
    "stuart1953": "Stuart (1953). The estimation and comparison of strengths of association in "
    "contingency tables. Biometrika 40.",
    "winkler1972": "Winkler (1972). A decision-theoretic approach to interval estimation. "
    "Journal of the American Statistical Association 67.",
    "zhao2001": "Zhao, Karypis (2001). Criterion functions for document clustering. Technical "
    "report, University of Minnesota.",
}
